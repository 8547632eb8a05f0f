# Keeps the events of a device in a ring of five files, so that they never need more than 5 MB.
class RingLog
  KEEP = 5
  LIMIT = 1 << 20

  def initialize(base)
    @base = base
    @buffer = +""
    open_new
  end

  def <<(line)
    @buffer << line << "\n"
    flush if @buffer.bytesize >= 32 << 10
    self
  end

  def close
    flush
    @file.fsync
    @file.close
  end

  private

  def flush
    @size += @file.syswrite(@buffer)
    @buffer.clear
    rotate if @size >= LIMIT
  end

  def rotate
    @file.fsync
    @file.close
    oldest = "#{@base}.#{KEEP - 1}"
    File.unlink(oldest) if File.exist?(oldest)
    (KEEP - 2).downto(0) do |n|
      from = n.zero? ? @base : "#{@base}.#{n}"
      File.rename(from, "#{@base}.#{n + 1}") if File.exist?(from)
    end
    File.open(".") { |d| d.fsync }
    open_new
  end

  def open_new
    @file = File.open(@base, File::CREAT | File::WRONLY | File::APPEND)
    @file.sync = true
    @size = @file.size
  end
end

log = RingLog.new("events.log")
250_000.times { |i| log << "event #{i}: sensor #{i % 40} reads #{(i * 7919) % 1000} at #{1_700_000_000 + i}" }
log.close
puts Dir["events.log*"].sort.map { |f| "#{f} #{File.size(f)}" }
