/** What `validate` may list. A new one starts here: the compiler then names what it lacks. */
export const validations = ['certificates'] as const

export type Validation = (typeof validations)[number]
