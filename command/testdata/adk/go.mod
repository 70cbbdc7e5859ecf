module example.com/programs

go 1.25.0

require (
	google.golang.org/adk v1.6.0
	google.golang.org/adk/v2 v2.2.0
	google.golang.org/genai v1.40.0
)
