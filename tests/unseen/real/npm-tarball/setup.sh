mkdir -p package app
echo '{"name":"blindpkg","version":"1.0.0"}' > package/package.json
for i in $(seq 1 250); do seq 1 200 | sed 's/.*/exports.f& = x => x + &;/' > package/m$i.js; done
tar czf blindpkg-1.0.0.tgz package; rm -r package
echo '{"name":"app","version":"1.0.0"}' > app/package.json
