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
	CodeFile:      "the file cannot be read or is too large",
	CodeField:     "unknown field",
	CodeValue:     "value of the wrong type, or out of range",
	CodeDuplicate: "a key is given twice",
	CodeMissing:   "a required field is missing",
	CodeConflict:  "fields exclude each other",
	CodeRef:       "a ref that leads nowhere, outside its folder, in a circle, or twice to one file",

	CodeName:      "not a valid name of an agent",
	CodeSameName:  "two agents have one name",
	CodeOrder:     "order does not list every sub-agent once",
	CodeEndless:   "the loop can never stop",
	CodeFinalizer: "more than one finalizer, a finalizer that may exit, or no other step",
	CodeNoSteps:   "a workflow agent has no sub-agents",
	CodeNoLoop:    "this works only inside a loop",
	CodeCannot:    "an exit would be refused, or a permission is never used",
	CodeAnyone:    "every model may end the loop, because no can_exit_loop is set",
	CodeTimes:     "one time limit leaves no room for another",

	CodeUnknownKey: "a key is read, but no agent writes it",
	CodeKeyTaken:   "a key has the name of a built-in value",
	CodeKeyName:    "a placeholder cannot name this key",
	CodeUnread:     "no agent reads this input",
	CodeNeverSet:   "this value never exists here",
	CodeExitKey:    "the turn that ends the loop does not write this key",
	CodeSharedKey:  "two agents write one output key, or it is an input",

	CodeExpr:     "the expression does not compile",
	CodeTemplate: "the placeholders of a text cannot be read",
	CodeStop:     "a stop condition, score or limit that makes no sense",
	CodeCache:    "the cache cannot know what its step depends on",
	CodeJudge:    "an agent scores its own work",
	CodeWords:    "a score must be found in a model's words",

	CodeTask:    "the task cannot run as described",
	CodeOutside: "a path leaves its folder",
	CodeModel:   "the model does not exist, or none is given",
	CodeTool:    "the tool does not exist, or cannot work as described",
	CodePrice:   "the cost is limited, but a model has no price",
	CodeCalls:   "more model calls than a run may make",
	CodeNoBound: "unbounded, or unknown",

	CodeResult:   "it is unclear which step's words the loop hands back",
	CodeUnsafe:   "a value may run as code in this command",
	CodePerson:   "a person who may not answer, or whose answer is not used",
	CodeCallback: "a callback cannot work as described, or is never called",
}
