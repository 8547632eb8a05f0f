# Three workers of a web server log into the same file.
LOG = "access.log"

class AccessLog
  def initialize(path)
    @file = File.open(path, File::WRONLY | File::CREAT, 0o644)
    @file.sync = true
    @file.seek(0, IO::SEEK_END)
  end

  def add(worker, n)
    @file.write(format("10.0.%d.%d - - \"GET /page/%d HTTP/1.1\" 200 %d\n", worker, n % 250, n, 500 + n % 4000))
  end
end

workers = (1..3).map do |worker|
  fork do
    log = AccessLog.new(LOG)
    600.times do |n|
      log.add(worker, n)
      sleep 0.002
    end
  end
end
workers.each { |pid| Process.wait(pid) }
puts "1800 requests, #{File.foreach(LOG).count} lines"
