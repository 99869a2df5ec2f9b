# ActionCable of Rails on Puma, with a room that gets a message each 100 ms. ActionCable sends a ping each 3 s by itself.
require "action_cable"

module ApplicationCable
  class Connection < ActionCable::Connection::Base
  end

  class Channel < ActionCable::Channel::Base
  end
end

class RoomChannel < ApplicationCable::Channel
  def subscribed
    stream_from "room"
  end

  def say(data)
    transmit({ "said" => data["text"] })
  end
end

ActionCable.server.config.cable = { "adapter" => "async" }
ActionCable.server.config.logger = Logger.new(File::NULL)
ActionCable.server.config.connection_class = -> { ApplicationCable::Connection }
# With its usual four threads messages of a room may overtake each other, which the test would see.
ActionCable.server.config.worker_pool_size = 1
# The same for the up to ten threads of its event loop.
ActionCable.server.event_loop.instance_variable_set(:@executor, Concurrent::SingleThreadExecutor.new)
ActionCable.server.config.disable_request_forgery_protection = true
# Without Rails, nothing else names the adapters.
require "action_cable/subscription_adapter/async"

Thread.new do
  seq = 0
  loop do
    sleep 0.1
    seq += 1
    ActionCable.server.broadcast("room", { seq: seq, ts: (Time.now.to_f * 1000).to_i })
  end
end

run ActionCable.server
