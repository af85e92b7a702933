/** The values of `write --validate`. A new one starts here: the compiler then asks for its rule. */
export const contentKinds = ['pem', 'key-pair', 'yaml', 'json', 'pod'] as const

export type ContentKind = (typeof contentKinds)[number]
