for g in $(seq 330); do
  mkdir -p gems/gem$g/lib/gem$g
  for f in a b c d e f; do echo "module Gem$g; end" > gems/gem$g/lib/gem$g/$f.rb; done
done
{
  echo 'Dir.glob("gems/*/lib").sort.each { |d| $LOAD_PATH.unshift(File.expand_path(d)) }'
  for g in $(seq 330); do for f in a b c d e f; do echo "require 'gem$g/$f'"; done; done
} > app.rb
