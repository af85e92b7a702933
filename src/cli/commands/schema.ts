import { printJson } from '../output/io.js'
import { command } from '../words/command.js'

/** `holdfast schema`. */
export const schemaCommand = command({
  name: 'schema',
  summary: 'print the JSON Schema of the configuration',
  description: `Prints the JSON Schema (draft 7) of the configuration file, for editors and checks: it knows every field, with its values, its default and
what it means. holdfast itself refuses more: targets inside each other, files written twice, and whatever needs this node to be known.

An editor with the YAML language server completes and checks a configuration whose first line names the schema.`,
  examples: `  holdfast schema > /etc/holdfast/schema.json
  sed -i '1i # yaml-language-server: $schema=schema.json' /etc/holdfast/holdfast.yaml`,
  exitCodes: `0 printed, 2 wrong usage.`,
  run: async ({ io }) => {
    const { configurationSchema } = await import('../../config/schema.js')
    printJson(io.stdout, configurationSchema())
  },
})
