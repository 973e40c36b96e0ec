"""What people and programs outside reach Holdfast through; thin, one package each."""
