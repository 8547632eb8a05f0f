cd app && npm install --offline --cache ../cache --no-audit --no-fund --no-update-notifier ../blindpkg-1.0.0.tgz && ls node_modules/blindpkg | wc -l
