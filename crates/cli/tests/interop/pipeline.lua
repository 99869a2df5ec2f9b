-- Three requests at a time, on one connection: wrk does not tell whose answer it hands over. Each answer must have its own length, in this order.
local batch
function init()
  batch = wrk.format("GET", "/?length=3") .. wrk.format("GET", "/") .. wrk.format("GET", "/?length=1")
end

function request()
  return batch
end

local lengths, at = { 3, 12, 1 }, 0
function response(_, _, body)
  at = at % 3 + 1
  assert(#body == lengths[at], "an answer out of order")
end
