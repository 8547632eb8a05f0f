cat > receive.rb <<'R'
# Receives measurement files and confirms each as soon as it is safe.
require "fileutils"

def keep(name, data)
  File.open(File.join("received", name), "wb") { |f| f.write(data); f.fdatasync }
  File.open("confirmed", "a") { |f| f.puts name }
end

FileUtils.mkdir_p("received")
noise = Random.new(4).bytes(30_000)
400.times { |n| keep("probe#{n}.dat", noise[n, 20_000]) }
puts Dir.children("received").size
R
exec ruby receive.rb
