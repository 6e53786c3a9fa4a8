"""How often code runs: roots of heat, its flow along calls, guards and the routes that findings print."""
