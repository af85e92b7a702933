/** The broken configurations that a JSON Schema accepts, each with the limit of schemas that it shows. */
const withoutText = 'a schema sees data, and this is lost when the text is read'
const amongContents = 'two items of a list are compared with each other'
const amongTargets = 'two paths are compared with each other'
const normalised = 'a path is compared after it is normalised'
const range = 'a text stands for a length of time'
const grammar = 'the text has a grammar of its own'

export const beyondSchema: Readonly<Record<string, string>> = {
  'YAML 1.1': withoutText,
  'no namespace': 'a flag, the kubeconfig or the service account may give it',
  'objects inside a target': amongTargets,
  'the root by detours': normalised,
  'the same target twice': amongTargets,
  'the same target by a relative path': amongTargets,
  'a target in a target': amongTargets,
  'stateDirectory inside a target': amongTargets,
  'the configuration inside a target': normalised,
  'moved from where it is': amongTargets,
  'moved up': amongTargets,
  'moved from another target': amongTargets,
  'moved from below another target': amongTargets,
  'a cycle': amongTargets,
  'one old path for two': amongTargets,
  'two items of one file': amongContents,
  'an item and a combined file': amongContents,
  'an item in a directory, and a combined file': amongContents,
  'a file that is a directory': amongContents,
  'a file below a file': amongContents,
  'a combined file that is a directory': amongContents,
  'the same object twice': amongContents,
  'a directory of a reserved name in symlink mode': 'which names are reserved depends on publish',
  '..data in symlink mode': 'whether the name is the first of its path depends on into',
  'a selector of no sense': grammar,
  'a label of no sense': grammar,
  'files where the directories of what is selected must be': amongContents,
  'the same selection twice': amongContents,
  'a check that takes long': range,
  'a timeout of nothing': range,
  'a wait for silence that ends before it': range,
  'a wait that is shorter than the silence': range,
  'an interval without end': range,
}
