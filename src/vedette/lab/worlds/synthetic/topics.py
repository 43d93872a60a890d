"""Topics of the synthetic web: eighteen trades and pastimes, each with the words that its sentences are built from.

The verbs are regular and fit any of the topic's things, and each place has its own preposition; so every sentence of
``grammar`` is grammatical whichever words it draws.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of the synthetic web with its vocabulary; each field is a list of words or phrases."""

    slug: str
    label: str
    agents: tuple[str, ...]
    things: tuple[str, ...]
    verbs: tuple[str, ...]
    adjectives: tuple[str, ...]
    places: tuple[str, ...]
    virtues: tuple[str, ...]
    activities: tuple[str, ...]


def _split_phrases(phrases: str) -> tuple[str, ...]:
    return tuple(phrase.strip() for phrase in phrases.split(","))


def _parse_topic(slug: str, label: str, *lists: str) -> Topic:
    agents, things, verbs, adjectives, places, virtues, doings = map(_split_phrases, lists)
    return Topic(slug, label, agents, things, verbs, adjectives, places, virtues, doings)


TOPICS: tuple[Topic, ...] = (
    _parse_topic(
        "harbour",
        "Harbour",
        "pilot, harbour master, diver, net maker, skipper, lock keeper, deckhand, rope maker",
        "buoy, mooring rope, trawler, lantern, ferry, slipway, tide gauge, anchor, fishing net, sea wall, rudder, "
        "dinghy, capstan, chart, oyster bed, signal mast",
        "inspect, repair, paint, measure, replace, tow, survey, haul, clean, lower",
        "salt-stained, seaworthy, tarred, weathered, tidal, sunken, floating, brass, narrow, sheltered, barnacled, "
        "watertight",
        "on the north quay, at the slipway, below the lighthouse, in the inner basin, along the breakwater, beside "
        "the fish market",
        "patience, calm water, daylight, fresh tar, sea room, warning",
        "mending nets, sounding the channel, waiting for the tide, scraping hulls, splicing rope, landing the catch",
    ),
    _parse_topic(
        "astronomy",
        "Astronomy",
        "astronomer, lens grinder, night assistant, amateur observer, cataloguer, planetarium guide, comet hunter, "
        "physicist",
        "telescope, eyepiece, star chart, mirror, dome, spectrograph, comet, nebula, photographic plate, tripod, "
        "meteor, eclipse, double star, lunar crater, planet, orbit",
        "observe, measure, sketch, record, calculate, photograph, classify, name, track, predict",
        "faint, distant, variable, circular, bright, reddened, elliptical, unresolved, binary, polar, dusty, "
        "slow-moving",
        "above the southern horizon, in the winter sky, at the hill observatory, near the ecliptic, behind the dome, "
        "in the star catalogue",
        "darkness, steady air, exposure time, precision, moonlight, silence",
        "polishing a mirror, timing an occultation, waiting for clear skies, counting meteors, aligning the mount, "
        "drawing the moon",
    ),
    _parse_topic(
        "baking",
        "Baking",
        "baker, miller, apprentice, pastry cook, oven builder, confectioner, market trader, home cook",
        "loaf, sourdough starter, rolling pin, proving basket, oven, flour sack, rye cracker, scale, cinnamon bun, "
        "dough scraper, baking stone, fruit cake, pie crust, bread knife, oat biscuit, malt syrup",
        "bake, knead, weigh, slice, taste, dust, scald, cover, season, glaze",
        "crusty, wholemeal, golden, sour, floury, unsalted, wood-fired, braided, sticky, overnight, stone-ground, "
        "buttery",
        "at the corner bakery, in the mill kitchen, beside the oven, on the cooling rack, at the Saturday market, in "
        "the cold larder",
        "warmth, yeast, steam, butter, time, salt",
        "kneading by hand, feeding the starter, scoring the crust, shaping rolls, proving overnight, sieving flour",
    ),
    _parse_topic(
        "cycling",
        "Cycling",
        "cyclist, frame builder, mechanic, courier, club rider, touring rider, race marshal, wheel builder",
        "bicycle, chain, saddle, gear cable, brake lever, pannier, tyre, spoke, hub, pump, cycle lane, pedal, "
        "mudguard, bottom bracket, repair stand, headlamp",
        "adjust, oil, replace, inspect, tighten, test, true, pack, polish, lock",
        "steel, lightweight, folding, worn, hand-built, muddy, tubeless, rigid, upright, squeaking, well-oiled, "
        "borrowed",
        "on the canal path, at the community workshop, over the pass, along the coast road, in the bicycle shed, near "
        "the railway arch",
        "grip, balance, stamina, grease, comfort, air pressure",
        "truing a wheel, climbing in low gear, riding in the rain, patching tubes, commuting by bicycle, descending "
        "slowly",
    ),
    _parse_topic(
        "gardening",
        "Gardening",
        "gardener, seed collector, allotment holder, botanist, hedge cutter, nursery owner, florist, composter",
        "seedling, rose bush, greenhouse, wheelbarrow, compost heap, apple tree, flower bed, bean row, watering can, "
        "spade, hedge, rhubarb crown, cold frame, bulb, trellis, herb border",
        "water, prune, plant, mulch, harvest, graft, shelter, weed, move, inspect",
        "evergreen, hardy, overgrown, sun-warmed, shaded, climbing, rain-fed, frost-bitten, fragrant, waterlogged, "
        "raised, walled",
        "behind the south wall, on the allotment, under the pear tree, in the potting shed, along the gravel path, in "
        "the kitchen garden",
        "drainage, shade, leaf mould, rain, sunlight, shelter",
        "sowing in trays, turning compost, pruning in winter, saving seed, weeding by hand, forcing rhubarb",
    ),
    _parse_topic(
        "railways",
        "Railways",
        "signaller, station master, engine driver, track engineer, timetable planner, guard, platelayer, dispatcher",
        "signal box, locomotive, platform, level crossing, timetable, sleeper, viaduct, points lever, branch line, "
        "carriage, tunnel, ticket office, goods wagon, turntable, footbridge, water tower",
        "inspect, close, repair, reopen, extend, restore, electrify, measure, replace, photograph",
        "narrow-gauge, disused, single-track, punctual, cast-iron, diesel, riveted, overgrown, double-headed, remote, "
        "listed, delayed",
        "at the junction, beyond the tunnel, on the branch line, in the goods yard, beside platform four, at the "
        "summit halt",
        "traction, ballast, signalling, steam, maintenance, ridership",
        "coupling wagons, reading signals, reopening a station, relaying track, planning connections, shunting at "
        "night",
    ),
    _parse_topic(
        "geology",
        "Geology",
        "geologist, quarry worker, field student, mineral collector, well driller, mapmaker, seismologist, fossil "
        "hunter",
        "fossil, rock sample, cliff, quarry, hand lens, borehole, limestone cave, fault line, glacier, crystal, "
        "hammer, pebble beach, coal seam, volcano, moraine, slate roof",
        "survey, sample, describe, date, drill, measure, collect, sketch, examine, expose",
        "sedimentary, folded, porous, ancient, weathered, glacial, fractured, crystalline, iron-rich, layered, "
        "volcanic, polished",
        "in the river gorge, at the foot of the cliff, under the peat, along the fault, in the old quarry, on the "
        "raised beach",
        "pressure, erosion, clay, groundwater, limestone, deep time",
        "reading strata, cutting thin sections, logging cores, walking the outcrop, sorting pebbles, dating ash layers",
    ),
    _parse_topic(
        "weaving",
        "Weaving",
        "weaver, dyer, spinner, shepherd, pattern drafter, mill hand, tailor, wool merchant",
        "loom, shuttle, woollen blanket, spindle, warp beam, dye vat, tapestry, linen sheet, fleece, bobbin, carpet, "
        "pattern card, tweed jacket, silk ribbon, reed hook, heddle",
        "thread, dye, wash, unpick, stretch, repair, fold, card, mend, soak",
        "hand-woven, striped, indigo, coarse, fine, undyed, felted, reversible, patterned, fringed, moth-eaten, "
        "twilled",
        "in the weaving shed, at the dye works, beside the mill stream, on the drying green, in the cloth hall, above "
        "the shop",
        "tension, wool, alum, colour, patience, lanolin",
        "warping the loom, spinning flax, mixing dyes, carding fleece, reading a draft, finishing cloth",
    ),
    _parse_topic(
        "birds",
        "Birds",
        "birdwatcher, ringer, warden, ornithologist, sound recordist, volunteer counter, wildlife painter, ranger",
        "heron, nest box, barn owl, hide, feather, lapwing, migration route, reed bed, swift, wader flock, "
        "kingfisher, field notebook, skylark, osprey, feeding station, dawn chorus",
        "count, photograph, record, watch, protect, sketch, film, identify, monitor, disturb",
        "migratory, ground-nesting, rare, wintering, speckled, juvenile, silent, coastal, tame, crested, nocturnal, "
        "long-billed",
        "on the salt marsh, over the estuary, in the reed bed, at the edge of the wood, beside the gravel pit, from "
        "the tower hide",
        "cover, stillness, open water, insect life, luck, quiet",
        "counting waders, ringing chicks, building nest boxes, listening at dawn, keeping a life list, clearing scrub",
    ),
    _parse_topic(
        "printing",
        "Printing",
        "printer, typesetter, bookbinder, proofreader, engraver, type designer, publisher, paper maker",
        "printing press, typeface, woodcut, proof sheet, ink roller, composing stick, title page, paper mill, margin, "
        "lead type, letterpress card, binding thread, footnote, poster, galley, page layout",
        "print, proof, ink, align, gather, fold, correct, number, design, stitch",
        "hand-set, italic, smudged, justified, bold, deckle-edged, limited, two-colour, misprinted, legible, gilt, "
        "ragged",
        "at the print shop, in the bindery, on the imposing stone, under the press, in the type cabinet, at the book "
        "fair",
        "ink, contrast, white space, even pressure, care, kerning",
        "setting type, mixing ink, reading proofs, cutting blocks, sewing signatures, choosing paper",
    ),
    _parse_topic(
        "music",
        "Music",
        "violin maker, organist, choir leader, pianist, piano tuner, fiddler, conductor, brass player",
        "violin, church organ, songbook, reed, accordion, string quartet, rehearsal room, drum, concert hall, harp, "
        "melody, tuning fork, music stand, clarinet, score, metronome",
        "tune, rehearse, perform, record, repair, transpose, play, borrow, restore, arrange",
        "resonant, out-of-tune, baroque, improvised, muted, wooden, fast, four-part, traditional, minor-key, "
        "amplified, rehearsed",
        "in the village hall, at the summer festival, behind the organ loft, on the bandstand, in the practice room, "
        "at the folk club",
        "rhythm, breath, resonance, practice, harmony, rosin",
        "singing in parts, tuning by ear, learning a reel, voicing a reed, keeping time, reading a score",
    ),
    _parse_topic(
        "maps",
        "Maps",
        "cartographer, surveyor, hill walker, map librarian, orienteer, geographer, navigator, volunteer mapper",
        "contour map, compass, trig point, atlas, footpath, grid reference, globe, legend, boundary stone, map sheet, "
        "scale bar, theodolite, street plan, waypoint, coastline, projection",
        "survey, study, update, trace, publish, fold, digitise, compare, check, correct",
        "large-scale, hand-drawn, outdated, topographic, waterproof, magnetic, shaded, unnamed, disputed, annotated, "
        "conical, detailed",
        "on the summit cairn, in the map room, across the moor, at the parish boundary, along the old drove road, on "
        "sheet forty",
        "accuracy, relief, detail, bearing, scale, orientation",
        "taking bearings, drawing contours, walking the boundary, measuring a baseline, naming streams, following a "
        "compass",
    ),
    _parse_topic(
        "databases",
        "Databases",
        "administrator, architect, data engineer, developer, release engineer, support analyst, operator, reviewer",
        "index, table, query plan, transaction, replica, backup, log segment, lock, page cache, checkpoint, schema, "
        "connection pool, migration, cursor, write-ahead log, partition",
        "review, rename, monitor, restore, migrate, compress, inspect, configure, disable, benchmark",
        "clustered, read-only, stale, consistent, append-only, in-memory, nullable, sharded, idempotent, nightly, "
        "corrupt, composite",
        "in the staging cluster, on the primary node, inside a transaction, after a failover, in the release notes, "
        "on cold storage",
        "latency, throughput, durability, isolation, disk space, memory",
        "tuning a query, restoring a backup, adding an index, reading a plan, vacuuming tables, rotating logs",
    ),
    _parse_topic(
        "windpower",
        "Wind power",
        "turbine technician, grid planner, meteorologist, rotor designer, site manager, crane driver, farmer, energy "
        "adviser",
        "wind turbine, rotor blade, substation, battery store, gearbox, solar panel, transmission line, anemometer, "
        "tower section, generator, meter, transformer, inverter, cable trench, foundation, heat pump",
        "install, inspect, connect, lubricate, finance, upgrade, test, replace, monitor, commission",
        "offshore, variable, gusty, grid-scale, three-bladed, idle, high-voltage, subsidised, low-carbon, upwind, "
        "direct-drive, seasonal",
        "on the ridge, at the offshore array, beside the substation, in the control room, above the treeline, across "
        "the plateau",
        "capacity, wind speed, storage, demand, torque, public support",
        "balancing the grid, climbing the tower, forecasting gusts, laying cable, storing surplus power, repairing "
        "blades",
    ),
    _parse_topic(
        "nursing",
        "Nursing",
        "nurse, midwife, ward sister, physiotherapist, pharmacist, carer, paramedic, student nurse",
        "bandage, patient record, hospital bed, stethoscope, vaccine, waiting room, wheelchair, night shift, care "
        "plan, ambulance, thermometer, discharge letter, medicine trolley, hearing aid, sling, clinic",
        "check, clean, record, prepare, assess, deliver, explain, adjust, review, organise",
        "sterile, overnight, elderly, routine, painless, chronic, community, gentle, portable, urgent, well-staffed, "
        "preventive",
        "on the children's ward, at the rural clinic, during the night shift, in the recovery room, beside the bed, "
        "at the day centre",
        "rest, trust, hygiene, dignity, attention, kindness",
        "changing dressings, taking a pulse, teaching self-care, visiting at home, handing over, measuring doses",
    ),
    _parse_topic(
        "chess",
        "Chess",
        "grandmaster, club player, arbiter, problem composer, coach, junior champion, opening theorist, "
        "correspondence player",
        "endgame, pawn structure, opening, chess clock, rook, bishop pair, tournament hall, score sheet, sacrifice, "
        "knight outpost, chess problem, passed pawn, exchange, gambit, stalemate trick, rating list",
        "study, attack, defend, analyse, publish, solve, annotate, accept, offer, prepare",
        "positional, drawn, sharp, isolated, blockaded, forgotten, tactical, equal, hanging, winning, quiet, "
        "symmetrical",
        "on the queenside, in time trouble, at the congress, after the exchange of queens, on the long diagonal, in "
        "the final round",
        "initiative, tempo, space, calculation, king safety, nerve",
        "calculating variations, adjourning a game, studying endgames, playing blindfold, trading pieces, keeping "
        "score",
    ),
    _parse_topic(
        "pottery",
        "Pottery",
        "potter, kiln builder, glazer, clay digger, ceramicist, museum conservator, tile maker, studio assistant",
        "kiln, teapot, glaze, clay body, stoneware bowl, potter's wheel, slip jug, tile, storage jar, firing log, "
        "raku vase, turning tool, porcelain cup, ash bucket, cone pack, plaster mould",
        "shape, glaze, fire, sand, mend, decorate, stamp, cool, weigh, photograph",
        "salt-glazed, unfired, cracked, burnished, thin-walled, earthenware, celadon, chipped, matt, lidded, "
        "wood-ash, crazed",
        "in the studio, beside the kiln, on the drying rack, at the clay pit, in the museum store, under the window",
        "heat, moisture, porosity, grog, symmetry, oxygen",
        "centring clay, stacking the kiln, mixing glazes, pulling handles, testing clay, firing with wood",
    ),
    _parse_topic(
        "council",
        "Council",
        "councillor, town clerk, planning officer, resident, housing adviser, treasurer, campaigner, caretaker",
        "budget, planning application, bus route, public library, footbridge, petition, playground, council house, "
        "bin collection, town hall, street lamp, cycle scheme, market square, by-law, swimming pool, parking permit",
        "approve, discuss, postpone, fund, oppose, review, publish, support, defend, inspect",
        "unpopular, overdue, publicly owned, revised, cross-party, affordable, temporary, council-run, controversial, "
        "draft, local, accessible",
        "at the town hall, in the public gallery, near the market square, on the estate, at Tuesday's meeting, in the "
        "planning office",
        "funding, consent, turnout, scrutiny, common sense, goodwill",
        "counting votes, reading minutes, setting the budget, repairing pavements, chairing a meeting, consulting "
        "residents",
    ),
)

FIRST_NAMES = _split_phrases(
    "Ada, Amina, Bridget, Callum, Carmen, Daniel, Edith, Elif, Farid, Fiona, George, Hana, Ines, Ivor, Jonas, Kasia, "
    "Lars, Leila, Magnus, Maeve, Nadia, Noor, Oscar, Petra, Rafael, Rosa, Samir, Saskia, Tomas, Una, Viktor, Wanda, "
    "Yusuf, Zofia"
)
SURNAMES = _split_phrases(
    "Abara, Ashdown, Bellamy, Brandt, Castell, Cole, Darzi, Ekman, Farrow, Fenwick, Garside, Haldane, Ibarra, Jessop, "
    "Kowal, Lindqvist, Marlowe, Mbeki, Nettle, Okafor, Penrose, Quill, Rahman, Sorley, Tamm, Underhill, Varga, "
    "Wetherby, Yardley, Zeller"
)
TOWNS = _split_phrases(
    "Ashford Mill, Brackwater, Calder Bridge, Dunmore, Eastholt, Fallowby, Garrick, Hexley, Inchmore, Kelbrook, "
    "Lambsfold, Marrow Bay, Netherby, Oakhampton Cross, Pellgate, Ravensey, Saltmarsh, Thornwick, Upper Tarn, Wendle"
)
MONTHS = _split_phrases(
    "January, February, March, April, May, June, July, August, September, October, November, December"
)
NUMBERS = _split_phrases(
    "three, four, five, six, seven, eight, nine, eleven, twelve, fourteen, twenty, thirty, forty, sixty"
)
