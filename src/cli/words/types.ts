import type { Option } from 'commander'
import type { Io } from '../output/io.js'

/* A command as a value, and what its words say of the types of its action. */

export interface FlagSettings<V, D> {
  /** Makes the value of the text. `before`: that of the same flag, which stands on the line more than once. */
  readonly parse?: (text: string, before?: V) => V
  readonly choices?: readonly V[]
  /** The value without the flag, and what the help calls it. */
  readonly fallback?: D
  readonly shown?: string
  /** The environment variable that may set it, too. Commander itself would read the environment of the process. */
  readonly env?: string
  /** The file that counts where it exists, and neither the line nor the variable names another. */
  readonly usual?: string
  /** Attributes of flags that exclude it. */
  readonly conflicts?: readonly string[]
  readonly hidden?: boolean
  /** One of many commands, which the help of the program explains for all of them. */
  readonly global?: boolean
}

/** A flag, as commander parses it; its type knows its words and its value. */
export interface TypedFlag extends Option {
  readonly settings: FlagSettings<unknown, unknown>
  /** Of the type alone. */
  readonly value: unknown
}

/** The value of a flag with these words: `V` where they name one. `D`: that without the flag. */
export type ValueOf<F extends string, V, D> = F extends `${string}${'<' | '['}${string}`
  ? V | (undefined extends D ? undefined : never)
  : F extends `--no-${string}`
    ? boolean
    : undefined extends D
      ? true | undefined
      : boolean

type LongName<F extends string> = F extends `${string}--${infer Long}`
  ? Long extends `${infer Name} ${string}`
    ? Name
    : Long
  : never
type CamelCase<S extends string> = S extends `${infer First}-${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : S
type UnnegatedName<Long extends string> = Long extends `no-${infer Name}` ? CamelCase<Name> : CamelCase<Long>
/** As commander names it among the options. */
type Attribute<F extends TypedFlag> = UnnegatedName<LongName<F['flags']>>

/** What commander makes of flags: a type that follows from their words. */
export type FlagsOf<F extends readonly TypedFlag[]> = {
  readonly [One in F[number] as undefined extends One['value'] ? never : Attribute<One>]: One['value']
} & {
  readonly [One in F[number] as undefined extends One['value'] ? Attribute<One> : never]?: Exclude<
    One['value'],
    undefined
  >
}

/** How a usage names a word: `<path>`, `[manifest]`, `[path...]`; what it is; and what it may be. */
export type Word = readonly [usage: string, description: string, choices?: readonly string[]]

type WordsOf<W extends readonly Word[]> = {
  [Index in keyof W]: W[Index][0] extends `${string}...${string}`
    ? readonly string[]
    : W[Index][0] extends `<${string}`
      ? string
      : string | undefined
}

/** What a command line gives to its command. */
interface GivenLine<Flags> {
  readonly io: Io
  readonly options: Flags
  /** The flags that stand on the line, by their attributes: no variable and no default has set them. */
  readonly named: ReadonlyMap<string, string>
  /** The words behind `--`; undefined: there is none. */
  readonly afterDashes: readonly string[] | undefined
}

export interface CommandOf<W extends readonly Word[], F extends readonly TypedFlag[]> {
  readonly name: string
  readonly summary: string
  readonly description: string
  readonly words?: W
  readonly flags?: F
  readonly commands?: readonly CommandData[]
  /** Where the words do not say it. */
  readonly usage?: string
  /** A paragraph of the help behind the flags. */
  readonly more?: string
  readonly examples: string
  readonly exitCodes: string
  readonly run?: (given: GivenLine<FlagsOf<F>>, ...words: WordsOf<W>) => unknown
}

/** Of any words and flags. */
export type CommandData = Omit<CommandOf<readonly Word[], readonly TypedFlag[]>, 'run'> & {
  readonly run?: (given: GivenLine<never>, ...words: never) => unknown
}
