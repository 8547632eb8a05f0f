exec rdfind -makeresultsfile false -deleteduplicates true photos
