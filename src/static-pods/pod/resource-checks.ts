/** Checks of resources, which compare requests with limits, and those of containers with those of the pod (validateResourceRequirements). */
import { isQualifiedName } from '../../kubernetes-names.js'
import { asList, asMap } from '../json.js'
import { isLess, parseQuantity, sumOf, wholeUp, type Quantity } from './quantity.js'
import { isThere, once, type Check, type FieldPlace } from './place.js'

const hugePages = 'hugepages-'
/** IsNativeResource */
const isNative = (name: string) => !name.includes('/') || name.includes('kubernetes.io/')
const isHuge = (name: string) => name.startsWith(hugePages)
const isComputed = (name: string) => ['cpu', 'memory'].includes(name) || isHuge(name)
const isExtended = (name: string) =>
  !isNative(name) && !name.startsWith('requests.') && isQualifiedName(`requests.${name}`)
/** `spec.resources`, not those of a container, or an overhead. */
const ofPod = ({ path }: FieldPlace) => path.length === 2

const isName: Check = (_, place, name) =>
  isQualifiedName(name) &&
  (isComputed(name) ||
    (!ofPod(place) && (name === 'ephemeral-storage' || (name.includes('/') && (isNative(name) || isExtended(name))))))

const isAmount: Check = (value, _, name) => {
  const amount = parseQuantity(value)
  if (amount === undefined) return true
  return amount.digits >= 0n && !(isExtended(name) && amount.power < 0)
}

/** IsHugePageResourceValueDivisible */
const isOfPages: Check = (value, _, name) => {
  const [amount, page] = [parseQuantity(value), parseQuantity(name.slice(hugePages.length))]
  if (!isHuge(name) || amount === undefined || amount.digits < 0n) return true
  return page !== undefined && page.digits > 0n && page.power >= 0 && wholeUp(amount) % wholeUp(page) === 0n
}

const limitOf = ({ owner }: FieldPlace, name: string) => parseQuantity(asMap(owner.limits)?.[name])

const withinBounds: Check = (value, place, name) => {
  const [amount, limit] = [parseQuantity(value), limitOf(place, name)]
  return !amount || !limit || !isLess(limit, amount)
}

/** IsOvercommitAllowed */
const isReserved: Check = (value, place, name) => {
  if (isNative(name) && !isHuge(name)) return true
  const [amount, limit] = [parseQuantity(value), limitOf(place, name)]
  return !amount || (limit !== undefined && !isLess(amount, limit) && !isLess(limit, amount))
}

const namesOf = (...maps: readonly unknown[]) => maps.flatMap((map) => Object.keys(asMap(map) ?? {}))

/** `value`: an overhead, or what has limits and requests. */
const isBesideOthers: Check = (value, { owner }) => {
  const names = value === owner ? namesOf(owner.limits, owner.requests) : namesOf(value)
  return !names.some(isHuge) || names.includes('cpu') || names.includes('memory')
}

type Amounts = Map<string, Quantity>

function addAmounts(to: Amounts, more: Amounts): Amounts {
  const all = new Map(to)
  for (const [name, amount] of more) {
    const known = all.get(name)
    all.set(name, known === undefined ? amount : sumOf(known, amount))
  }
  return all
}

/** Requests stand for limits where there are none (SetDefaults_Pod). */
function amountsOf(container: unknown, list: 'limits' | 'requests'): Amounts {
  const resources = asMap(asMap(container)?.resources) ?? {}
  const maps = list === 'limits' ? [resources.limits] : [resources.limits, resources.requests]
  const found = new Map<string, Quantity>()
  for (const [name, value] of maps.flatMap((map) => Object.entries(asMap(map) ?? {}))) {
    const amount = parseQuantity(value)
    if (amount) found.set(name, amount)
  }
  return found
}

/** What the containers need summed: of init containers the largest counts, beside the sidecars that run by then (AggregateContainerRequests). */
function summed({ spec }: FieldPlace, list: 'limits' | 'requests'): Amounts {
  return once(spec, `summed: ${list}`, () => {
    let total: Amounts = new Map()
    let sides: Amounts = new Map()
    const peaks: Amounts[] = []
    for (const container of asList(spec.containers)) total = addAmounts(total, amountsOf(container, list))
    for (const container of asList(spec.initContainers)) {
      const own = addAmounts(sides, amountsOf(container, list))
      peaks.push(own)
      if (asMap(container)?.restartPolicy !== 'Always') continue
      sides = own
      total = addAmounts(total, amountsOf(container, list))
    }
    for (const peak of peaks)
      for (const [name, amount] of peak) {
        const known = total.get(name)
        if (known === undefined || isLess(known, amount)) total.set(name, amount)
      }
    return total
  })
}

const isEnough =
  (list: 'limits' | 'requests'): Check =>
  (value, place, name) => {
    if (!ofPod(place) || (list === 'limits' && !isHuge(name))) return true
    const [amount, needs] = [parseQuantity(value), summed(place, list).get(name)]
    return !amount || !needs || !isLess(amount, needs)
  }

/** Before 1.37, what the containers request stands for what the pod does not. */
const isEnoughByDefault: Check = (value, place, name) => {
  if (!ofPod(place) || isHuge(name) || isThere(asMap(place.owner.requests)?.[name])) return true
  const [amount, needs] = [parseQuantity(value), summed(place, 'requests').get(name)]
  return !amount || !needs || !isLess(amount, needs)
}

const isWithinPod: Check = (_, { spec }) => {
  const limits = amountsOf(spec, 'limits')
  return asList(spec.containers).every((container) =>
    [...amountsOf(container, 'limits')].every(([name, amount]) => {
      const limit = limits.get(name)
      return limit === undefined || !isLess(limit, amount)
    }),
  )
}

/** By the names that the table of rules gives them, with what is usually wrong. */
export const resourceChecks: Readonly<Record<string, readonly [Check, string]>> = {
  resource: [isName, 'is no resource of a pod or a container'],
  amount: [isAmount, 'must not be less than 0, and of an extended resource must be whole'],
  pages: [isOfPages, 'must be a multiple of the size of its pages'],
  limited: [withinBounds, ''],
  reserved: [isReserved, ''],
  'beside huge pages': [isBesideOthers, 'must have cpu or memory beside huge pages'],
  'enough requests': [isEnough('requests'), ''],
  'enough limits': [isEnough('limits'), ''],
  'enough by default': [isEnoughByDefault, ''],
  'limits of containers': [isWithinPod, ''],
  'no claims': [(value, place) => (ofPod(place) ? value === undefined : asList(value).length === 0), ''],
}
