"""The language of a page is that of its text, whatever the page declares."""

# ruff: noqa: RUF001 -- letters that look like Latin ones are tested here

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.parse.text.language import detect_language

PARAGRAPHS = {
    "en": (
        "The library was built at the edge of the town because the old market square had no room for it. "
        "Nobody who has seen the reading hall in the morning light would say that they made a mistake. There "
        "are more than forty thousand books, and most of them may be taken home for a month."
    ),
    "de": (
        "Die Bibliothek wurde am Rand der Stadt gebaut, weil auf dem alten Marktplatz kein Platz mehr für "
        "sie war. Wer den Lesesaal im Morgenlicht gesehen hat, würde nicht sagen, dass es ein Fehler war. Es "
        "gibt mehr als vierzigtausend Bücher, und die meisten darf man für einen Monat mit nach Hause nehmen."
    ),
    "fr": (
        "La bibliothèque a été construite au bord de la ville parce que la vieille place du marché n'avait "
        "plus de place pour elle. Personne de ceux qui ont vu la salle de lecture dans la lumière du matin "
        "ne dirait que c'était une erreur. Il y a plus de quarante mille livres, et on peut emporter la "
        "plupart pour un mois."
    ),
    "es": (
        "La biblioteca se construyó a las afueras de la ciudad porque en la antigua plaza del mercado ya no "
        "había sitio para ella. Nadie que haya visto la sala de lectura con la luz de la mañana diría que "
        "fue un error. Hay más de cuarenta mil libros, y la mayoría se puede llevar a casa durante un mes."
    ),
    "it": (
        "La biblioteca è stata costruita ai margini della città perché nella vecchia piazza del mercato non "
        "c'era più posto. Nessuno che abbia visto la sala di lettura nella luce del mattino direbbe che è "
        "stato uno sbaglio. Ci sono più di quarantamila libri, e la maggior parte si può portare a casa per "
        "un mese."
    ),
    "pt": (
        "A biblioteca foi construída à beira da cidade porque na antiga praça do mercado já não havia lugar "
        "para ela. Ninguém que tenha visto a sala de leitura à luz da manhã diria que foi um erro. Há mais "
        "de quarenta mil livros, e a maioria pode ser levada para casa durante um mês."
    ),
    "nl": (
        "De bibliotheek werd aan de rand van de stad gebouwd omdat er op het oude marktplein geen plaats "
        "meer voor was. Niemand die de leeszaal in het ochtendlicht heeft gezien, zou zeggen dat het een "
        "vergissing was. Er zijn meer dan veertigduizend boeken en de meeste mag je een maand mee naar huis "
        "nemen."
    ),
    "sv": (
        "Biblioteket byggdes i utkanten av staden eftersom det inte längre fanns plats för det på det gamla "
        "torget. Ingen som har sett läsesalen i morgonljuset skulle säga att det var ett misstag. Det finns "
        "mer än fyrtiotusen böcker och de flesta av dem får man ta med sig hem i en månad."
    ),
    "da": (
        "Biblioteket blev bygget i udkanten af byen, fordi der ikke længere var plads til det på det gamle "
        "torv. Ingen, der har set læsesalen i morgenlyset, ville sige, at det var en fejl. Der er mere end "
        "fyrre tusind bøger, og de fleste af dem må man tage med hjem i en måned."
    ),
    "fi": (
        "Kirjasto rakennettiin kaupungin laidalle, koska vanhalla torilla ei ollut sille enää tilaa. Kukaan, "
        "joka on nähnyt lukusalin aamun valossa, ei sanoisi, että se oli virhe. Kirjoja on yli "
        "neljäkymmentätuhatta, ja useimmat niistä saa viedä kotiin kuukaudeksi."
    ),
    "pl": (
        "Bibliotekę zbudowano na skraju miasta, ponieważ na starym rynku nie było już dla niej miejsca. "
        "Nikt, kto widział czytelnię w porannym świetle, nie powiedziałby, że to był błąd. Jest tam ponad "
        "czterdzieści tysięcy książek, a większość z nich można zabrać do domu na miesiąc."
    ),
    "cs": (
        "Knihovna byla postavena na okraji města, protože na starém náměstí už pro ni nebylo místo. Nikdo, "
        "kdo viděl čítárnu v ranním světle, by neřekl, že to byla chyba. Je tam více než čtyřicet tisíc knih "
        "a většinu z nich si můžete vzít na měsíc domů."
    ),
    "hu": (
        "A könyvtárat a város szélén építették fel, mert a régi piactéren már nem volt számára hely. Aki "
        "látta az olvasótermet a reggeli fényben, nem mondaná, hogy hiba volt. Több mint negyvenezer könyv "
        "van benne, és a legtöbbet egy hónapra haza lehet vinni."
    ),
    "ro": (
        "Biblioteca a fost construită la marginea orașului pentru că în vechea piață nu mai era loc pentru "
        "ea. Nimeni care a văzut sala de lectură în lumina dimineții nu ar spune că a fost o greșeală. Sunt "
        "peste patruzeci de mii de cărți, iar cele mai multe pot fi luate acasă pentru o lună."
    ),
    "tr": (
        "Kütüphane şehrin kenarına yapıldı çünkü eski pazar meydanında artık ona yer yoktu. Okuma salonunu "
        "sabah ışığında gören hiç kimse bunun bir hata olduğunu söylemez. Kırk binden fazla kitap var ve "
        "çoğunu bir ay için eve götürebilirsiniz."
    ),
    "ru": (
        "Библиотеку построили на окраине города, потому что на старой рыночной площади для неё уже не было "
        "места. Никто из тех, кто видел читальный зал в утреннем свете, не сказал бы, что это была ошибка. "
        "Там больше сорока тысяч книг, и большинство из них можно взять домой на месяц."
    ),
    "uk": (
        "Бібліотеку збудували на околиці міста, бо на старій ринковій площі для неї вже не було місця. Ніхто "
        "з тих, хто бачив читальну залу в ранковому світлі, не сказав би, що це була помилка. Там понад "
        "сорок тисяч книжок, і більшість із них можна взяти додому на місяць."
    ),
    "bg": (
        "Библиотеката беше построена в края на града, защото на стария пазарен площад вече нямаше място за "
        "нея. Никой, който е виждал читалнята на утринната светлина, не би казал, че това е било грешка. Има "
        "повече от четиридесет хиляди книги и повечето могат да се вземат вкъщи за един месец."
    ),
    "el": (
        "Η βιβλιοθήκη χτίστηκε στην άκρη της πόλης επειδή στην παλιά πλατεία της αγοράς δεν υπήρχε πια χώρος "
        "γι' αυτήν. Κανείς που έχει δει την αίθουσα ανάγνωσης στο πρωινό φως δεν θα έλεγε ότι ήταν λάθος. "
        "Υπάρχουν πάνω από σαράντα χιλιάδες βιβλία και τα περισσότερα μπορεί κανείς να τα πάρει σπίτι για "
        "έναν μήνα."
    ),
    "he": (
        "הספרייה נבנתה בקצה העיר כי בכיכר השוק הישנה כבר לא היה לה מקום. איש ממי שראה את אולם הקריאה באור "
        "הבוקר לא היה אומר שזו הייתה טעות. יש בה יותר מארבעים אלף ספרים, ואת רובם אפשר לקחת הביתה לחודש."
    ),
    "ar": (
        "بنيت المكتبة على أطراف المدينة لأن ساحة السوق القديمة لم يعد فيها مكان لها. لا أحد ممن رأى قاعة "
        "القراءة في ضوء الصباح يقول إن ذلك كان خطأ. فيها أكثر من أربعين ألف كتاب، ويمكن أخذ معظمها إلى البيت "
        "لمدة شهر."
    ),
    "fa": (
        "کتابخانه را در کنار شهر ساختند چون در میدان قدیمی بازار دیگر جایی برای آن نبود. هیچ کس که تالار "
        "مطالعه را در نور صبح دیده باشد نمی‌گوید که این کار اشتباه بود. بیش از چهل هزار کتاب در آن هست و "
        "بیشتر آنها را می‌توان برای یک ماه به خانه برد."
    ),
    "hi": (
        "पुस्तकालय शहर के किनारे बनाया गया क्योंकि पुराने बाज़ार के चौक में उसके लिए जगह नहीं बची थी। जिसने "
        "भी सुबह की रोशनी में पढ़ने का कमरा देखा है, वह नहीं कहेगा कि यह गलती थी। यहाँ चालीस हज़ार से "
        "ज़्यादा किताबें हैं और उनमें से अधिकतर एक महीने के लिए घर ले जाई जा सकती हैं।"
    ),
    "th": (
        "ห้องสมุดถูกสร้างขึ้นที่ชานเมืองเพราะที่จัตุรัสตลาดเก่าไม่มีที่ว่างเหลืออยู่แล้ว "
        "ไม่มีใครที่เคยเห็นห้องอ่านหนังสือในแสงยามเช้าจะบอกว่านั่นเป็นความผิดพลาด "
        "มีหนังสือมากกว่าสี่หมื่นเล่ม และส่วนใหญ่ยืมกลับบ้านได้หนึ่งเดือน"
    ),
    "vi": (
        "Thư viện được xây ở rìa thành phố vì quảng trường chợ cũ không còn chỗ cho nó. Không ai từng nhìn "
        "thấy phòng đọc trong ánh sáng ban mai lại nói rằng đó là một sai lầm. Có hơn bốn mươi nghìn cuốn "
        "sách, và phần lớn có thể mượn về nhà trong một tháng."
    ),
    "id": (
        "Perpustakaan itu dibangun di pinggir kota karena di alun-alun pasar lama sudah tidak ada tempat "
        "lagi. Tidak seorang pun yang pernah melihat ruang baca dalam cahaya pagi akan berkata bahwa itu "
        "sebuah kesalahan. Ada lebih dari empat puluh ribu buku, dan sebagian besar boleh dibawa pulang "
        "selama sebulan."
    ),
    "zh": (
        "图书馆建在城市的边缘，因为旧集市广场上已经没有地方了。凡是在晨光中见过阅览室的人，都不会说这是一个错误。"
        "馆里有四万多本书，其中大部分可以借回家看一个月。我们每天早上九点开门，晚上八点关门。"
    ),
    "zh-Hant": (
        "圖書館建在城市的邊緣，因為舊市集廣場上已經沒有地方了。凡是在晨光中見過閱覽室的人，都不會說這是一個錯誤。"
        "館裡有四萬多本書，其中大部分可以借回家看一個月。我們每天早上九點開門，晚上八點關門。"
    ),
    "ja": (
        "図書館は町のはずれに建てられました。古い市場の広場には、もう場所がなかったからです。朝の光の中で閲覧室を"
        "見た人なら、それが間違いだったとは言わないでしょう。四万冊以上の本があり、そのほとんどは一か月のあいだ家"
        "に持ち帰ることができます。"
    ),
    "ko": (
        "도서관은 옛 시장 광장에 더 이상 자리가 없었기 때문에 도시 변두리에 지어졌습니다. 아침 "
        "햇살 속에서 열람실을 본 사람이라면 그것이 잘못이었다고 말하지 않을 것입니다. 책은 사만 "
        "권이 넘고, 대부분은 한 달 동안 집으로 빌려 갈 수 있습니다."
    ),
}
SENTENCES = {
    "en": "The shop is closed on Sundays.",
    "de": "Der Laden ist am Sonntag geschlossen.",
    "fr": "Le magasin est fermé le dimanche.",
    "es": "La tienda está cerrada los domingos.",
    "it": "Il negozio è chiuso la domenica.",
    "pt": "A loja está fechada aos domingos.",
    "nl": "De winkel is op zondag gesloten.",
    "sv": "Affären är stängd på söndagar.",
    "da": "Butikken er lukket om søndagen.",
    "fi": "Kauppa on suljettu sunnuntaisin.",
    "pl": "Sklep jest zamknięty w niedziele.",
    "cs": "Obchod je v neděli zavřený.",
    "hu": "A bolt vasárnap zárva van.",
    "ro": "Magazinul este închis duminica.",
    "tr": "Dükkân pazar günleri kapalıdır.",
    "ru": "Магазин закрыт по воскресеньям.",
    "uk": "Крамниця зачинена щонеділі.",
    "bg": "Магазинът е затворен в неделя.",
    "el": "Το κατάστημα είναι κλειστό τις Κυριακές.",
    "he": "החנות סגורה בימי ראשון.",
    "ar": "المتجر مغلق يوم الأحد.",
    "fa": "مغازه روزهای یکشنبه بسته است.",
    "hi": "दुकान रविवार को बंद रहती है।",
    "th": "ร้านปิดทุกวันอาทิตย์",
    "vi": "Cửa hàng đóng cửa vào chủ nhật.",
    "id": "Toko itu tutup pada hari Minggu.",
    "zh": "商店星期天不营业。",
    "ja": "店は日曜日に閉まっています。",
    "ko": "가게는 일요일에 문을 닫습니다.",
}

CODE = """
def total(rows: list[int]) -> int:
    result = 0
    for row in rows:
        result += row
    return result
"""


def primary(tag: str) -> str:
    """Return the language of a tag."""
    return tag.partition("-")[0]


@pytest.mark.parametrize("tag", PARAGRAPHS)
@pytest.mark.parametrize("declared", ["", "en", "de-AT", "ja", "zh-CN", "xx", "x-default"])
def test_a_paragraph_needs_no_declaration(tag: str, declared: str) -> None:
    """Three sentences are recognised in every language, under a wrong declaration as well as under none."""
    assert detect_language(PARAGRAPHS[tag], declared) == primary(tag)


@pytest.mark.parametrize("tag", PARAGRAPHS)
def test_a_true_declaration_does_no_harm(tag: str) -> None:
    """The text of a page with a correct declaration gets the declared language."""
    assert detect_language(PARAGRAPHS[tag], tag) == primary(tag)
    assert detect_language(PARAGRAPHS[tag], f"{primary(tag).upper()}_XX") == primary(tag)


@pytest.mark.parametrize("language", SENTENCES)
def test_a_short_sentence_is_recognised(language: str) -> None:
    """Half a dozen words are enough if the declaration does not contradict them."""
    assert detect_language(SENTENCES[language], language) == language


@pytest.mark.parametrize(("declared", "language"), [("da", "da"), ("nb-NO", "no"), ("nn", "no"), ("no", "no")])
def test_the_declaration_decides_between_close_relatives(declared: str, language: str) -> None:
    """A sentence that is valid Danish and Norwegian has the language declared by the page."""
    assert detect_language("Butikken er lukket.", declared) == language


@pytest.mark.parametrize("declared", ["", "en", "ru"])
@pytest.mark.parametrize("text", ["", " \n\t", "12 345, 67.8 %", "2026-11-15 10:00", "→ • — ©", "\x00\x01", "x"])
def test_no_words_no_language(text: str, declared: str) -> None:
    """Digits, symbols and a single letter have no language, even if the page declares one."""
    assert detect_language(text, declared) == ""


def test_a_word_or_two_are_taken_as_declared() -> None:
    """Text too short to recognize has the declared language, if its letters allow that."""
    assert detect_language("Impressum", "de") == "de"
    assert detect_language("Impressum", "") == ""
    assert detect_language("Impressum", "ru") == ""
    assert detect_language("日本", "ja") == "ja"
    assert detect_language("日本", "ko") == ""


def test_the_larger_part_of_a_mixed_text_counts() -> None:
    """A few words of another language do not change a page's language."""
    mixed = PARAGRAPHS["ru"] + " Click here to download the latest release. " + PARAGRAPHS["ru"]
    assert detect_language(mixed, "en") == "ru"
    assert detect_language(PARAGRAPHS["de"] + CODE + PARAGRAPHS["de"], "en") == "de"


def test_menu_and_footer_do_not_count() -> None:
    """A long text is judged by its middle, not by the English template around it."""
    template = "Home About us Contact Terms of use Privacy policy All rights reserved " * 4
    assert detect_language(template + PARAGRAPHS["fi"] * 6 + template, "en") == "fi"


def test_odd_characters_do_not_hide_a_language() -> None:
    """Control characters, half surrogates and noncharacters are skipped."""
    odd = PARAGRAPHS["el"].replace(" ", " \x00\ud800\ufffe\x7f ")
    assert detect_language(odd, "en") == "el"


@pytest.mark.parametrize("declared", ["und", "mul", "zxx", "*", "english", "C", "e", "1", "\ud800\ud800"])
def test_a_declaration_that_names_no_language_is_none(declared: str) -> None:
    """If the text is not enough, either, there is no language."""
    assert detect_language("Impressum", declared) == ""


@given(st.text(max_size=1500), st.text(max_size=20) | st.sampled_from(["en", "zh-TW", "tlh", "sr-Latn"]))
def test_any_text_has_a_short_plain_answer(text: str, declared: str) -> None:
    """The result is always a primary subtag or nothing, and never an error."""
    answer = detect_language(text, declared)
    assert answer == "" or (answer.isascii() and answer.isalpha() and answer.islower() and len(answer) in {2, 3})


@given(st.sampled_from(sorted(PARAGRAPHS)), st.integers(2, 40))
def test_length_does_not_matter(tag: str, times: int) -> None:
    """The windows of a long text see the same language as the whole of a short one."""
    assert detect_language(PARAGRAPHS[tag] * times, "") == primary(tag)


@pytest.mark.parametrize("declared", ["", "ru"])
def test_where_a_window_falls_on_numbers_more_is_read(declared: str) -> None:
    """Tables at one and two thirds of a text do not hide the language of the text after them."""
    table, text = "12.5 | 34.7 | 56.9 | " * 6, PARAGRAPHS["pl"][:200]
    assert detect_language((table + text) * 3, declared) == "pl"
