-- Prints `enough` when a thread has had 200 responses: whoever reads it interrupts wrk, however long that took.
local left = 200

function response()
   left = left - 1
   if left == 0 then
      print("enough")
      io.stdout:flush()
   end
end
