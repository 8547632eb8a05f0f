# What a Rails application in development does before each request: has a source changed?
require 'logger'
require 'active_support'
require 'active_support/file_update_checker'

reloads = 0
checker = ActiveSupport::FileUpdateChecker.new([], { File.expand_path('app') => ['rb'] }) { reloads += 1 }
every = (ARGV[0] || 1).to_i
250.times do |n|
  checker.execute_if_updated if n % every == 0
  Array.new(300) { |i| "<li>#{i * n}</li>" }.join
end
puts "250 requests, #{reloads} reloads"
