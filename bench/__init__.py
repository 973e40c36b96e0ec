"""Side-by-side measurements of Holdfast and the tools people use today: `python -m bench`."""
