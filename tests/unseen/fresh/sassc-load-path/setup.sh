mkdir themes
awk 'BEGIN {
    for (n = 0; n < 120; n++) system("mkdir -p modules/m" n "/scss")
    for (n = 0; n < 120; n++) { f = sprintf("modules/m%d/scss/_part%d.scss", n, n); printf "@mixin m%d { .m%d { color: #%06d; } }\n", n, n, n > f; close(f) }
    for (t = 0; t < 12; t++) { f = "themes/theme" t ".scss"; for (n = t; n < 120; n++) printf "@import \"part%d\";\n@include m%d;\n", n, n > f; close(f) }
}'
