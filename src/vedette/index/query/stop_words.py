"""Words so common that a page that has them says nothing by it: a short list for each of some languages.

They are written here as people write them and kept as they are indexed (``vedette.text``). What is common in one
language may mean something in another ("die", "war", "sin"), or even in its own ("will", "it", "us"): whoever asks for
nothing else should get what he asks for.
"""

from vedette.text import split_words

_LISTS = {
    "en": """
        a all also an and any are as at be been but by can do does for from had has have how i if in is it its my no not
        of on or our so some than that the their them there these they this to was we were what when where which who
        will with you your
        """,
    "de": """
        aber als am an auch auf aus bei bin bis das dass dem den der des die doch durch ein eine einem einen einer er es
        für hat ich ihr im in ist kann man mit nach nicht noch nur oder sich sie sind so über um und uns vom von war was
        wenn wie wir wird zu zum zur
        """,
    "fr": """
        à au aux avec ce ces cette comme dans de des du elle en est et être eux il ils je la le les leur lui mais même
        mon ne nos notre nous on ont ou où par pas plus pour qu que qui sa sans se ses son sont sur ta te tu un une vos
        votre vous y
        """,
    "es": """
        a al algo como con cuando de del desde donde el ella ellos en entre era es esta este esto están fue ha han hay
        la las le les lo los más me mi muy no nos o para pero por porque que qué se ser si sin sobre son su sus también
        te tu un una y ya
        """,
    "it": """
        a ai al alla alle anche che chi ci come con cosa da dal dalla dei del della delle di dove e è ed gli ha hanno i
        il in io la le lo loro ma mi nel nella non o per perché più quando questa questo se sei si sono su sua sul suo
        ti tra un una uno
        """,
    "pt": """
        a ao aos as até com como da das de do dos e é ela ele em entre era essa esse esta este eu foi há isso já lhe
        mais mas me mesmo muito na não nas no nos o os ou para pela pelo por qual quando que quem se sem ser seu sua
        são também te um uma
        """,
    "nl": """
        aan al als bij dat de deze die dit door dus een en er geen had heb heeft het hij hoe ik in is je kan maar me met
        mijn naar niet nog nu of om onder ons ook op over te tot uit van veel voor waar was wat we wel wie wij worden
        wordt ze zich zijn zo
        """,
    "sv": """
        alla att av bara de den det dig din du där efter ej eller en er ett från för ha hade han har hon hur här i icke
        in inte jag kan man med men mig min mot ni nu när och om oss på samma sig sin ska som så till under upp ut var
        vi vid är
        """,
    "da": """
        af alle at blev da de dem den der deres det dig din du efter eller en er et for fra ham han har havde hun hvad
        hvis hvor i ikke ind jeg kan man med men mig min mod ned nej noget nogle nu når og også om op os på sig sin
        skal som til ud var vi
        """,
    "no": """
        alle at av ble bli da de dem den der det dette du eller en er et etter for fra få ha hadde han har hun hva hvis
        hvor i ikke inn jeg kan man med men meg min mot nå når og også om opp oss over på seg sin skal som så til under
        ut var ved vi
        """,
    "fi": """
        ei eikä en ennen että hän he ja jo joka jonka jos kaikki kanssa koska kuin kun me mikä minä mitä mukaan mutta
        muut myös ne niin noin nyt ole oli olla on ovat se sekä sen siitä sille sitä sinä tai tämä te tuo vaan vain
        vielä voi
        """,
    "ru": """
        без был была были быть в вам вас во вот все вы где да для до его ее если есть еще же за и из или им их к как ко
        когда кто ли мы на не нет но ну о об он она они от по при с со так то только ты у уже что это я
        """,  # noqa: RUF001 -- Russian is written in Cyrillic
}

STOP_WORDS: dict[str, tuple[str, ...]] = {
    language: tuple(dict.fromkeys(split_words(written))) for language, written in _LISTS.items()
}
_ALL = frozenset(word for words in STOP_WORDS.values() for word in words)


def is_stop_word(word: str) -> bool:
    """Whether a word, in the form in which it is indexed, is common in one of the languages.

    >>> is_stop_word("the"), is_stop_word("fur"), is_stop_word("kafka")
    (True, True, False)
    """
    return word in _ALL
