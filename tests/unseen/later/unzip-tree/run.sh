unzip -q src.zip -d out && sync -f out
