while read region; do tabix genes.bed.gz $region; done < regions > hits
wc -l hits
