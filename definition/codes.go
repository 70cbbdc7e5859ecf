// SPDX-License-Identifier: Apache-2.0

package definition

// The codes of problems. They are stable: a code keeps its meaning for ever.
const (
	CodeSyntax    = "LOOP001" // not YAML, several documents, or nothing at all
	CodeFile      = "LOOP002" // the file cannot be read, is too large or nested too deep
	CodeField     = "LOOP003" // a field that there is not, or not for this type of agent
	CodeValue     = "LOOP004" // a value of the wrong type, or out of range
	CodeDuplicate = "LOOP005" // a key given twice
	CodeMissing   = "LOOP006" // a field that is needed
	CodeConflict  = "LOOP007" // fields that do not go together
	CodeRef       = "LOOP008" // a ref that leads nowhere, outside, in a circle, or twice to one place

	CodeName      = "LOOP010" // an agent's name that cannot be one
	CodeSameName  = "LOOP011" // two agents of one name
	CodeOrder     = "LOOP012" // order is not a permutation of the sub-agents
	CodeEndless   = "LOOP013" // a loop that can never stop
	CodeFinalizer = "LOOP014" // two finalizers, one that may exit, or nothing but one
	CodeNoSteps   = "LOOP015" // a workflow agent without sub-agents
	CodeNoLoop    = "LOOP016" // something that only works inside a loop
	CodeCannot    = "LOOP017" // an exit that would be refused, or permission that is never used
	CodeAnyone    = "LOOP018" // every model may end a loop, as nobody is said to
	CodeTimes     = "LOOP019" // times of which one leaves no room for the other

	CodeUnknownKey = "LOOP020" // a key is read that nobody writes
	CodeKeyTaken   = "LOOP021" // a key that has the name of a built-in value
	CodeKeyName    = "LOOP022" // a key that a placeholder cannot name
	CodeUnread     = "LOOP023" // an input that nobody reads
	CodeNeverSet   = "LOOP024" // a value that is never there
	CodeExitKey    = "LOOP025" // a key that the turn which ends the loop leaves as it was
	CodeSharedKey  = "LOOP026" // an output key that two agents write, or that an input has

	CodeExpr     = "LOOP030" // an expression that does not compile
	CodeTemplate = "LOOP031" // a text whose placeholders cannot be read
	CodeStop     = "LOOP032" // a stop condition, a score or a limit that cannot be
	CodeCache    = "LOOP033" // a cache that cannot know what its step depends on
	CodeJudge    = "LOOP034" // a score given by the agent that it is about
	CodeWords    = "LOOP035" // a number that is to be found in a model's words

	CodeTask    = "LOOP040" // a task that cannot be run as described
	CodeOutside = "LOOP041" // a path that leaves its folder
	CodeModel   = "LOOP042" // a model that there is not, or none at all
	CodeTool    = "LOOP043" // a tool that there is not, or that cannot be as described
	CodePrice   = "LOOP044" // a bound on the cost, and a model without a price
	CodeCalls   = "LOOP045" // more model calls than a run may make
	CodeNoBound = "LOOP046" // what nothing bounds, or nobody knows

	CodeResult   = "LOOP050" // a loop of which nobody can say whose words it hands back
	CodeUnsafe   = "LOOP049" // a command in which a value may be run as code
	CodePerson   = "LOOP047" // a person who may not answer, or whose answer nobody looks at
	CodeCallback = "LOOP048" // a callback that cannot be as described, or is never called
)

// Codes says in a few words what each code means, for help texts and for
// documentation that is made from them.
var Codes = map[string]string{
	CodeSyntax:    "the file is not one YAML document",
	CodeFile:      "the file cannot be read, or is too large",
	CodeField:     "unknown field",
	CodeValue:     "value of the wrong type, or out of range",
	CodeDuplicate: "a key given twice",
	CodeMissing:   "a field that is needed is missing",
	CodeConflict:  "fields that do not go together",
	CodeRef:       "a ref that leads nowhere, outside its folder, in a circle, or twice to one file",

	CodeName:      "a name that an agent cannot have",
	CodeSameName:  "two agents of one name",
	CodeOrder:     "order is not a permutation of the sub-agents",
	CodeEndless:   "a loop that can never stop",
	CodeFinalizer: "two finalizers, one that may exit, or nothing but one",
	CodeNoSteps:   "a workflow agent without sub-agents",
	CodeNoLoop:    "works only inside a loop",
	CodeCannot:    "an exit that would be refused, or a permission that is never used",
	CodeAnyone:    "every model may end a loop, as nobody is said to",
	CodeTimes:     "times of which one leaves no room for the other",

	CodeUnknownKey: "a key is read that nobody writes",
	CodeKeyTaken:   "a key that has the name of a built-in value",
	CodeKeyName:    "a key that a placeholder cannot name",
	CodeUnread:     "an input that nobody reads",
	CodeNeverSet:   "a value that is never there",
	CodeExitKey:    "a key that the turn which ends the loop leaves as it was",
	CodeSharedKey:  "an output key that two agents write, or that an input has",

	CodeExpr:     "an expression that does not compile",
	CodeTemplate: "a text whose placeholders cannot be read",
	CodeStop:     "a stop condition, a score or a limit that cannot be",
	CodeCache:    "a cache that cannot know what its step depends on",
	CodeJudge:    "a score given by the agent that it is about",
	CodeWords:    "a number that is to be found in a model's words",

	CodeTask:    "a task that cannot be run as described",
	CodeOutside: "a path that leaves its folder",
	CodeModel:   "a model that there is not, or none at all",
	CodeTool:    "a tool that there is not, or that cannot be as described",
	CodePrice:   "a bound on the cost, and a model without a price",
	CodeCalls:   "more model calls than a run may make",
	CodeNoBound: "what nothing bounds, or nobody knows",

	CodeResult:   "a loop of which nobody can say whose words it hands back",
	CodeUnsafe:   "a command in which a value may be run as code",
	CodePerson:   "a person who may not answer, or whose answer nobody looks at",
	CodeCallback: "a callback that cannot be as described, or is never called",
}
