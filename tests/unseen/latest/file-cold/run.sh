find attachments -type f | file -b --mime-type -f - | sort | uniq -c
