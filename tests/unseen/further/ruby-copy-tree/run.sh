exec /usr/bin/ruby -rfileutils -e 'FileUtils.cp_r("site", "release", preserve: true); puts Dir["release/**/*"].size'
