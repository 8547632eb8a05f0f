# Address labels: each goes through a file for the printer's filter.
require 'tempfile'

Dir.mkdir('spool') unless Dir.exist?('spool')
done = 0
300.times do |n|
  text = "Customer #{n}\nStreet #{n % 40}\n#{10000 + n} Town\n" * 200
  if ARGV[0]
    Tempfile.create('label', 'spool') { |f| f.write(text); f.flush; done += File.size(f.path) }
  else
    f = Tempfile.create('label', 'spool')
    f.write(text)
    f.close
    done += File.size(f.path)
  end
end
puts "#{done} bytes, #{Dir.children('spool').size} files left"
