"""Telegram as a channel: private chats, groups and their topics, inline keyboards."""
