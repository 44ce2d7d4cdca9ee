"""What a maze is before any dynamics: passages between positions, and heights."""
