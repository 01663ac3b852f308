"""LINE as a channel: pushes, Flex cards, postbacks, menus. It needs the extra `waiton[line]`."""
