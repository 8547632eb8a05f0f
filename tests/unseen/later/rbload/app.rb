# A reporting application of many small libraries, started from cron.
require "lib_boot"

reports = Dir.children("reports").sort
total = 0
reports.each do |name|
  File.foreach("reports/#{name}") { |line| total += line.to_i }
end
280.times { |i| require "component_#{i}/main" }
280.times { |i| require "component_#{i}/helpers/format" }
sum = (0...280).sum { |i| Object.const_get("Component#{i}").value }
puts "#{reports.size} reports, total #{total}, #{sum}"
