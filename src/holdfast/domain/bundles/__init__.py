"""What a bundle says besides content, and whether it is complete."""
