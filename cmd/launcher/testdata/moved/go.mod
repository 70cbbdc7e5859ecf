module example.com/moved

go 1.26

require github.com/refrain-dev/refrain v0.0.0

replace github.com/refrain-dev/refrain => ../../../..
