import { documentFields, kind } from './document.js'
import { mappingSchema, type Schema } from './field.js'

/** A selector needs the labels of all objects of a namespace. */
const needsLabels: Schema = {
  if: {
    required: ['source'],
    properties: {
      source: {
        required: ['kubernetes'],
        properties: { kubernetes: { not: { required: ['watch'], properties: { watch: { const: 'namespaces' } } } } },
      },
    },
  },
  then: {
    properties: {
      directories: {
        items: {
          properties: {
            contents: { items: { not: { anyOf: [{ required: ['secrets'] }, { required: ['configMaps'] }] } } },
          },
        },
      },
    },
  },
}

/** The JSON Schema of the configuration file, made of the tables that also read the file. */
export function configurationSchema(): Schema {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: kind,
    description:
      'Configures the holdfast commands agent, sync, check, verify, diff, adopt, rollback, status, reload and rbac.',
    ...mappingSchema(documentFields, {}, [{ schema: needsLabels }]),
  }
}
