# Rack's Hello World. `puma` finds this file in its folder.
run ->(_env) { [200, { "content-type" => "text/plain" }, ["Hello World!"]] }
