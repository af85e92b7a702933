/** The problems of a configuration's text. */
import { parseConfiguration } from '../../src/config/parse.js'
import { ConfigurationError } from '../../src/config/problem.js'

export const file = '/configurations/holdfast.yaml'

export async function problemsOf(text: string, options = {}): Promise<string> {
  try {
    await parseConfiguration(text, file, options)
  } catch (error) {
    if (error instanceof ConfigurationError) return error.message
    throw error
  }
  return 'none'
}
