"""The machine of the daemon: its storage folder, its processes, signals to it, and systemd."""
