mkdir -p content/posts layouts/_default
cat > config.toml <<C
baseURL = "http://example.org/"
title = "Notes"
disableKinds = ["taxonomy", "term"]
C
echo '<html><head><title>{{ .Title }}</title></head><body>{{ .Content }}</body></html>' > layouts/_default/single.html
echo '<html><body>{{ range .Pages }}<a href="{{ .RelPermalink }}">{{ .Title }}</a> {{ end }}</body></html>' > layouts/_default/list.html
cp layouts/_default/list.html layouts/index.html
for n in $(seq 900); do
  { printf -- '---\ntitle: "Post %d"\ndate: 2024-01-01\n---\n' $n; for p in 1 2 3 4 5 6 7 8; do echo "Some *words* of paragraph $p of post $n, with a [link](/posts/$n/)."; echo; done; } > content/posts/$n.md
done
