# t4_lines.rb PORT: raw TCP in Ruby, a thread for each connection, whose bytes come back. It closes none. What it did is in lines.json.
require "json"
require "socket"

# late: accepted 0.7 s to 2 s after the first one
counts = { accepted: 0, late: 0, messages: 0, ended: 0, lost: 0 }
began = nil
server = TCPServer.new("0.0.0.0", ARGV[0].to_i)
server.listen(512)
Thread.new do
  loop do
    sleep 0.15
    File.write("lines.part", JSON.generate(counts))
    File.rename("lines.part", "lines.json")
  end
end
loop do
  socket = server.accept
  counts[:accepted] += 1
  now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  began ||= now
  counts[:late] += 1 if (0.7..2).cover?(now - began)
  Thread.new(socket) do |one|
    one.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
    loop do
      one.write(one.readpartial(4096))
      counts[:messages] += 1
    end
  rescue EOFError
    counts[:ended] += 1
  rescue SystemCallError
    counts[:lost] += 1
  ensure
    one.close
  end
end
