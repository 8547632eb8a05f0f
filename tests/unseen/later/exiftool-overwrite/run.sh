exec exiftool -overwrite_original -Artist='A. Photographer' -Copyright='all rights reserved' photos
