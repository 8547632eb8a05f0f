# Votes from three counters go into one file: read, changed, replaced under a lock.
require "json"

FILE = "tally.json"

def replace(path, text)
  File.open("#{path}.new", "w") do |f|
    f.write(text)
    f.fsync
  end
  File.rename("#{path}.new", path)
  File.open(".") { |dir| dir.fsync }
end

def add(votes)
  File.open("tally.lock", File::RDWR | File::CREAT) do |lock|
    lock.flock(File::LOCK_EX)
    sums = JSON.parse(File.read(FILE))
    votes.each { |name, n| sums[name] = sums.fetch(name, 0) + n }
    replace(FILE, JSON.generate(sums))
  end
end

replace(FILE, "{}")
counters = (1..3).map do |counter|
  fork do
    8.times do |box|
      votes = Hash.new(0)
      500.times { |n| votes["list#{(n * counter + box) % 9}"] += 1 }
      sleep 0.15 # counts the next box
      add(votes)
    end
  end
end
counters.each { |pid| Process.wait(pid) }
puts "#{JSON.parse(File.read(FILE)).values.sum} votes"
