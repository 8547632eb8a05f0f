mkdir received
