"""State other than files: each kind is a plug-in behind `holdfast.ports.component`."""
