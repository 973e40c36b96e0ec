"""Parts of state other than files, each one a plug-in behind `holdfast.ports.component`."""
