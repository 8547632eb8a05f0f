find tree -type f -exec grep -l deadbee {} + ; exit 0
