# Takes orders from a directory and removes them; what happened is kept in the log.
require 'logger'
require 'json'

log = Logger.new('orders.log')
Dir.glob('inbox/*.json').sort.each do |file|
  order = JSON.parse(File.read(file))
  total = order['lines'].sum { |line| line['price'] * line['count'] }
  log.info("order #{order['id']} #{order['customer']} #{total} #{order['lines'].to_json}")
  File.delete(file)
end
puts "#{Dir.children('inbox').size} left"
