"""The machine of the daemon: its storage folder, its word on its health, its processes, signals and systemd."""
