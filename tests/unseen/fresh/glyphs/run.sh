exec ./glyphs
