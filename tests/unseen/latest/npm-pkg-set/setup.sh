cat > package.json <<'J'
{
  "name": "inventory",
  "version": "1.0.0",
  "private": true,
  "scripts": {
    "start": "node index.js"
  }
}
J
