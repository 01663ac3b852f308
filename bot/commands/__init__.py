"""The commands of the terminal, a module a subject; `bot.cli` joins them and says how each ends."""
